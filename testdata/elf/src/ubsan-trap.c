/* Undefined behaviour that a sanitizer may trap at: a shift, an index, a division, a null pointer. */
int table[16];

int shift(int value, int by) { return value << by; }
int element(int index) { return table[index]; }
int quotient(int value, int by) { return value / by; }
int first(const int *values) { return *values; }
