int work(int);int work2(int);
int twice(int x){return work(x)*2+work2(x);}
int main(int c,char**v){(void)v;return twice(c);}
