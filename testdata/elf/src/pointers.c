/* A table of pointers to strings and to itself, an imported pointer, and a null pointer. */
extern int elsewhere[] __attribute__((weak));
int here[4] = {1, 2, 3, 4};
const char *const names[] = {"first", "second", "third", 0};
struct { const char *name; int *number; void *nothing; int *other; const char *const *table; } record =
    {"a record", &here[2], 0, elsewhere, names};
void *get(int i) { return i ? (void *)names[i] : (void *)&record; }
void _start(void) { get(1); }
