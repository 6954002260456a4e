//! Which mnemonics are of which kind.

use iced_x86::Mnemonic;

/// Moves between registers and memory, of any width, without arithmetic.
pub(super) fn is_move(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Mov
            | Mnemonic::Movzx
            | Mnemonic::Movsx
            | Mnemonic::Movsxd
            | Mnemonic::Movss
            | Mnemonic::Movsd
            | Mnemonic::Movaps
            | Mnemonic::Movapd
            | Mnemonic::Movups
            | Mnemonic::Movupd
            | Mnemonic::Movdqa
            | Mnemonic::Movdqu
            | Mnemonic::Movd
            | Mnemonic::Movq
            | Mnemonic::Movlps
            | Mnemonic::Movhps
            | Mnemonic::Vmovss
            | Mnemonic::Vmovsd
            | Mnemonic::Vmovaps
            | Mnemonic::Vmovapd
            | Mnemonic::Vmovups
            | Mnemonic::Vmovupd
            | Mnemonic::Vmovdqa
            | Mnemonic::Vmovdqu
            | Mnemonic::Vmovd
            | Mnemonic::Vmovq
    )
}

/// Arithmetic and shuffles on packed integers: what a vectorizer, or intrinsics, produce.
pub(super) fn is_packed_integer(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Paddb
            | Mnemonic::Paddw
            | Mnemonic::Paddd
            | Mnemonic::Paddq
            | Mnemonic::Psubb
            | Mnemonic::Psubw
            | Mnemonic::Psubd
            | Mnemonic::Psubq
            | Mnemonic::Pmuludq
            | Mnemonic::Pmullw
            | Mnemonic::Pmulld
            | Mnemonic::Punpcklbw
            | Mnemonic::Punpckhbw
            | Mnemonic::Punpcklwd
            | Mnemonic::Punpckhwd
            | Mnemonic::Punpckldq
            | Mnemonic::Punpckhdq
            | Mnemonic::Punpcklqdq
            | Mnemonic::Punpckhqdq
            | Mnemonic::Pshufd
            | Mnemonic::Pshufb
            | Mnemonic::Pshuflw
            | Mnemonic::Pcmpeqb
            | Mnemonic::Pcmpeqd
            | Mnemonic::Pcmpgtd
            | Mnemonic::Psrlq
            | Mnemonic::Psrld
            | Mnemonic::Psrldq
            | Mnemonic::Psllq
            | Mnemonic::Pslld
            | Mnemonic::Vpaddb
            | Mnemonic::Vpaddw
            | Mnemonic::Vpaddd
            | Mnemonic::Vpaddq
            | Mnemonic::Vpsubd
            | Mnemonic::Vpsubq
            | Mnemonic::Vpmulld
            | Mnemonic::Vpmuludq
            | Mnemonic::Vpunpckldq
            | Mnemonic::Vpunpcklqdq
            | Mnemonic::Vpunpckhqdq
            | Mnemonic::Vpshufd
            | Mnemonic::Vpshufb
            | Mnemonic::Vpcmpeqb
            | Mnemonic::Vpcmpeqd
            | Mnemonic::Vpsrlq
            | Mnemonic::Vpsrld
            | Mnemonic::Vpslld
            | Mnemonic::Vpsllq
    )
}
