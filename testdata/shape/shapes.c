/* Thirty small functions of the kinds that servers are made of: list walks, parsers, hashes, buffers,
   callbacks, state machines. Compiled at several levels for tests of the machine-code witness. */
#include <stddef.h>

typedef struct node { struct node *next; long key; const char *name; int (*handler)(struct node *, void *); } node;
typedef struct { char *pos, *last, *end; node *list; unsigned flags; long count; } buffer;

extern int sink(const void *, long);
extern void *fetch(long);
extern long table[64];
#ifndef PART
#define PART 3
#endif

#if PART & 1
long list_sum(node *n, long limit) { long s = 0; while (n && s < limit) { s += n->key; n = n->next; } return s; }
node *list_find(node *n, long key, int exact) { for (; n; n = n->next) { if (exact ? n->key == key : n->key >= key) return n; } return NULL; }
int list_call(node *n, void *arg) { int rc = 0; while (n) { if (n->handler) { rc = n->handler(n, arg); if (rc != 0) break; } n = n->next; } return rc; }
int list_insert(buffer *b, node *n, long key) { n->key = key; n->next = b->list; b->list = n; b->count++; return sink(n, b->count); }
node *list_reverse(node *n) { node *r = NULL; while (n) { node *t = n->next; n->next = r; r = n; n = t; } return r; }
unsigned hash(const char *s, size_t len) { unsigned h = 5381; size_t i; for (i = 0; i < len; i++) h = h * 33 + (unsigned char) s[i]; return h; }
long parse_number(const char *s, const char *end) { long v = 0; if (s == end) return -1; for (; s < end; s++) { if (*s < '0' || *s > '9') return -1; v = v * 10 + (*s - '0'); } return v; }
int parse_header(buffer *b, const char **name, size_t *len) { char *p = b->pos; while (p < b->last && *p != ':') { if (*p == '\n') return -1; p++; } if (p == b->last) return -2; *name = b->pos; *len = (size_t) (p - b->pos); b->pos = p + 1; return 0; }
int buffer_put(buffer *b, const char *s, size_t len) { size_t i; if ((size_t) (b->end - b->last) < len) return sink(b, (long) len); for (i = 0; i < len; i++) b->last[i] = s[i]; b->last += len; return 0; }
int buffer_flush(buffer *b, int force) { long left = b->last - b->pos; if (left == 0 || (!force && left < 512)) return 0; if (sink(b->pos, left) != 0) { b->flags |= 4; return -1; } b->pos = b->last; return 0; }
int buffer_skip(buffer *b, char c) { int n = 0; while (b->pos < b->last && *b->pos == c) { b->pos++; n++; } return n; }
void buffer_init(buffer *b, size_t size) { b->pos = fetch((long) size); b->last = b->pos; b->end = b->pos + size; b->list = NULL; b->flags = 0; b->count = 0; }
int filter_head(node *n, buffer *b) { if (b->flags & 1) { if (sink(b, n->key) < 0) return -1; } b->flags &= ~1u; return n->handler(n, b); }
int filter_body(node *n, buffer *b) { long i; for (i = 0; i < b->count; i++) { if (table[i & 63] == n->key) { table[i & 63] = 0; sink(n, i); } } return n->handler(n, b); }
int state_next(int state, int c, buffer *b) { switch (state) { case 0: if (c == ' ') return 0; b->count++; return 1; case 1: if (c == '\r') return 2; b->last[0] = (char) c; b->last++; return 1; case 2: if (c != '\n') return -1; b->flags |= 2; return 3; default: return sink(b, c); } }
#endif

#if PART & 2
long table_add(long key, long value) { long i, k = key & 63; for (i = 0; i < 64; i++) { long s = (k + i) & 63; if (table[s] == 0) { table[s] = value; return s; } } return -1; }
long table_count(long low, long high) { long i, n = 0; for (i = 0; i < 64; i++) { if (table[i] >= low && table[i] < high) n++; } return n; }
int table_copy(long *out, size_t len, buffer *b) { size_t i; for (i = 0; i < len && i < 64; i++) { out[i] = table[i]; if (out[i] == 0 && sink(b, (long) i)) return -1; } return (int) i; }
int compare(const void *a, const void *b) { const node *x = a, *y = b; if (x->key != y->key) return x->key < y->key ? -1 : 1; const char *s = x->name, *t = y->name; while (*s && *s == *t) { s++; t++; } return *s - *t; }
void swap_nodes(node *a, node *b) { long k = a->key; const char *n = a->name; a->key = b->key; a->name = b->name; b->key = k; b->name = n; sink(a, k); sink(b, k); }
int sort_nodes(node *v, int n) { int i, j, moved = 0; for (i = 1; i < n; i++) for (j = i; j > 0 && compare(&v[j - 1], &v[j]) > 0; j--) { swap_nodes(&v[j - 1], &v[j]); moved++; } return moved; }
int request_start(buffer *b, node *n) { const char *name; size_t len; int rc = 0; while (b->pos < b->last) { name = b->pos; len = 0; while (b->pos < b->last && *b->pos != '\n') { b->pos++; len++; } b->pos++; if (len == 0) break; n->key = (long) len; n->name = name; rc = n->handler(n, b); if (rc) return rc; } return sink(n, rc); }
int request_done(buffer *b, node *n, int rc) { if (rc == 0) { if (b->flags & 8) sink(b, 8); b->flags = 0; } else if (rc > 300) { table[rc & 63]++; sink(n, rc); } b->list = n; return b->list ? sink(b->list, 1) : 0; }
double average(const double *v, long n, double start) { double s = start; long i; for (i = 0; i < n; i++) s += v[i]; return n ? s / (double) n : s; }
unsigned checksum(const unsigned char *p, size_t n, unsigned start) { unsigned a = start & 0xffff, b = start >> 16; while (n--) { a = (a + *p++) % 65521; b = (b + a) % 65521; } return b << 16 | a; }
char *escape(char *dst, const char *src, size_t n) { while (n--) { if (*src < 32) { *dst++ = '\\'; *dst++ = (char) (*src + 64); src++; } else *dst++ = *src++; } return dst; }
int decode(char *dst, const char *src, size_t n) { char *start = dst; while (n >= 3) { int hi, lo; if (*src != '%') { *dst++ = *src++; n--; continue; } hi = src[1]; lo = src[2]; hi = hi >= 'a' ? hi - 'a' + 10 : hi - '0'; lo = lo >= 'a' ? lo - 'a' + 10 : lo - '0'; *dst++ = (char) (hi << 4 | lo); src += 3; n -= 3; } return (int) (dst - start); }
int limit_check(node *n, long now, long rate) { long diff = now - n->key; if (diff < 0) diff = 0; n->key = now; table[now & 63] += rate - diff; if (table[now & 63] > 1000) return sink(n, diff) ? -1 : 1; return 0; }
int walk_tree(node **v, int n, int depth) { int i, s = 0; if (depth > 16 || !v) return 0; for (i = 0; i < n; i++) { if (!v[i]) continue; s += v[i]->handler ? v[i]->handler(v[i], v) : 1; s += walk_tree((node **) (void *) v[i]->next, n - 1, depth + 1); } return s; }
#endif
