#include <stdio.h>
int main(void) { printf("UPX! goes brrr\n"); return 0; }
