int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return n > 3 && d[0] == 'a' && d[1] == 'b'; }
