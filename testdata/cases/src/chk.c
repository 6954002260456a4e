#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) { char b[16]; strcpy(b, argv[0]); printf("%s %d\n", b, argc); return 0; }
