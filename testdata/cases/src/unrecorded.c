int add(int a, int b) { return a + b; }
int sum(int n) { int s = 0; for (int i = 0; i < n; i++) s = add(s, i); return s; }
