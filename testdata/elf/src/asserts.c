#include <assert.h>
int main(int argc, char **argv) { char copy[16]; assert(argc < 16); copy[argc] = argv[0][0]; return copy[argc & 3]; }
