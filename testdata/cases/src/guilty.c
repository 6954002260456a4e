#include <stdio.h>
int work(int n){int s=0;for(int i=0;i<n;i++){s+=i*n;printf("%d\n",s);}return s;}
int work2(int n){return work(n)+work(n+1);}
