.globl f
f: ret
.section .note.GNU-stack,"",@progbits
