#include <stdio.h>
__attribute__((optimize("O0"),noinline)) int slow(int x){int s=0; for(int i=0;i<x;i++){int y=i*2; s+=y; printf("%d\n",s);} return s;}
#pragma GCC push_options
#pragma GCC optimize ("O0")
int slow2(int x){int y=x*2; for(int i=0;i<x;i++){y+=i;printf("%d\n",y);} return y+1;}
#pragma GCC pop_options
__attribute__((noinline)) int fast(int x){int y=x*2; puts("x"); return y+1;}
int main(int c,char**v){return slow(c)+slow2(c)+fast(c);}
