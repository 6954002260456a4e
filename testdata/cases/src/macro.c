static int twice(int x) { return x + x; }
int step(int x) { return twice(x) - 1; }
int main(int argc, char **argv) { (void)argv; return step(argc) + step(twice(argc)); }
