//! Functions of a few instructions, assembled by GNU as; the source stands above the bytes.

use super::*;

fn features(code: &[u8]) -> Features {
    let mut decoder = Decoder::with_ip(64, code, 0x40_0000, iced_x86::DecoderOptions::NONE);
    read(&mut decoder, 0x40_0000, 0, code.len(), false, &mut Scratch::default())
}

#[test]
fn a_narrow_argument_is_stored_through_another_register() {
    // endbr64; push rbp; mov rbp,rsp; mov eax,edi; mov [rbp-0x24],esi; mov [rbp-0x14],al;
    // movzx eax,byte ptr [rbp-0x14]; add eax,[rbp-0x24]; pop rbp; ret
    let f = features(&[
        0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x89, 0xf8, 0x89, 0x75, 0xdc, 0x88, 0x45, 0xec, 0x0f,
        0xb6, 0x45, 0xec, 0x03, 0x45, 0xdc, 0x5d, 0xc3,
    ]);
    assert!(f.frame_pointer && f.first_stored && f.read_back && !f.argument_used);
    assert_eq!((f.instructions, f.slots, f.redundant), (9, 4, 1));
}

#[test]
fn a_profiling_hook_does_not_end_the_entry_block() {
    // push rbp; mov rbp,rsp; sub rsp,16; call mcount; mov [rbp-8],rdi; mov rax,[rbp-8]; mov eax,[rax]; leave; ret
    let f = features(&[
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xe8, 0xfb, 0x0f, 0x00, 0x00, 0x48, 0x89, 0x7d, 0xf8,
        0x48, 0x8b, 0x45, 0xf8, 0x8b, 0x00, 0xc9, 0xc3,
    ]);
    assert!(f.first_stored && f.read_back);
}

#[test]
fn a_jump_table_is_no_tail_call() {
    // cmp edi,5; ja 1f; mov eax,edi; notrack jmp [rax*8+0x1000]; 1: xor eax,eax; ret
    let f = features(&[
        0x83, 0xff, 0x05, 0x77, 0x0a, 0x89, 0xf8, 0x3e, 0xff, 0x24, 0xc5, 0x00, 0x10, 0x00, 0x00, 0x31, 0xc0,
        0xc3,
    ]);
    assert!(!f.jumps_through_pointer && f.argument_used);
    assert_eq!(f.zero_xors, 1);
}

#[test]
fn jumps_through_pointers_are_tail_calls() {
    // push rbx; mov rbx,rdi; mov rax,[rdi+8]; mov rdi,rbx; pop rbx; jmp rax
    let f = features(&[0x53, 0x48, 0x89, 0xfb, 0x48, 0x8b, 0x47, 0x08, 0x48, 0x89, 0xdf, 0x5b, 0xff, 0xe0]);
    assert!(f.jumps_through_pointer && f.argument_used && f.saves_low && !f.saves_high, "{f:?}");
    // mov rax,[rdi]; jmp [rax+0x20]
    let f = features(&[0x48, 0x8b, 0x07, 0xff, 0x60, 0x20]);
    assert!(f.jumps_through_pointer && !f.thunk);
}

#[test]
fn thunks_and_plt_entries_are_no_functions() {
    // call 1f; 2: pause; lfence; jmp 2b; 1: mov [rsp],rax; ret
    let f = features(&[
        0xe8, 0x07, 0x00, 0x00, 0x00, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, 0x48, 0x89, 0x04, 0x24, 0xc3,
    ]);
    assert!(f.thunk);
    // endbr64; jmp [rip+0x100]; nop
    let f = features(&[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x00, 0x01, 0x00, 0x00, 0x90]);
    assert!(f.thunk && !f.is_judged());
}

#[test]
fn saving_variable_arguments_is_not_storing_an_argument() {
    // sub rsp,0xd8; mov [rsp+0x28],rsi; mov [rsp+0x30],rdx; test al,al; je 1f; movaps [rsp+0x50],xmm0;
    // 1: add rsp,0xd8; ret
    let f = features(&[
        0x48, 0x81, 0xec, 0xd8, 0x00, 0x00, 0x00, 0x48, 0x89, 0x74, 0x24, 0x28, 0x48, 0x89, 0x54, 0x24, 0x30,
        0x84, 0xc0, 0x74, 0x05, 0x0f, 0x29, 0x44, 0x24, 0x50, 0x48, 0x81, 0xc4, 0xd8, 0x00, 0x00, 0x00, 0xc3,
    ]);
    assert!(f.varargs && f.any_stored && !f.first_stored);
}

#[test]
fn bytes_that_are_no_code_are_not_judged() {
    let f = features(&[0x06; 64]);
    assert!(f.undecodable > 0 && !f.is_judged());
}
