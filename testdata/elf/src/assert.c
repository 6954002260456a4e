/* PostgreSQL's way of asserting: the function is there in every build, and called in some. */
void ExceptionalCondition(const char *text) { for (volatile int i = 0; text[i]; i++) { } __builtin_trap(); }
#ifdef USE_ASSERT_CHECKING
#define Assert(x) ((x) ? (void)0 : ExceptionalCondition(#x))
#else
#define Assert(x) ((void)0)
#endif
int half(int n) { Assert(n >= 0); return n / 2; }
