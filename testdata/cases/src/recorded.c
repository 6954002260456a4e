int sum(int n);
int main(int argc, char **argv) { (void)argv; return sum(argc); }
