int live(int x) { return x + 1; }
