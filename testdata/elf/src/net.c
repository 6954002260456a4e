#include <arpa/inet.h>
#include <stdlib.h>
int main(int argc, char **argv) { return htons(argc) + ntohl(atol(argv[0])); }
