struct Inner { int x; };
struct Outer { Inner inner; double d; };
int inner(Outer &o) { return o.inner.x; }
