# Three units: one of code, one that ends with its header, one that is a null entry.
	.text
f:	ret
.Lend:
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11	# DW_TAG_compile_unit
	.byte 0
	.uleb128 0x25, 0x8, 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0	# producer, name, low_pc, high_pc
	.byte 0
	.section .debug_info,"",@progbits
	.long 1f-0f
0:	.short 4
	.long 0
	.byte 8
	.uleb128 1
	.asciz "GNU C17 12.2.0 -g -O2"
	.asciz "a.c"
	.quad f, .Lend-f
1:	.long 1f-0f
0:	.short 2
	.long 0
	.byte 8
1:	.long 1f-0f
0:	.short 4
	.long 0
	.byte 8, 0
1:
	.section .note.GNU-stack,"",@progbits
