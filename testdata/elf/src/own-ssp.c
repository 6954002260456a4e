void g(char *);
void g(char *b) { b[1] = 0; }
void __stack_chk_fail(void) { for (;;) { } }
char f(int n) { char b[64]; for (int i = 0; i < n; i++) b[i] = i; g(b); return b[n]; }
