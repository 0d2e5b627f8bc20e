// The compiled BPF program as bytes of the plug-in.
asm(".pushsection .rodata\n"
    ".balign 16\n"
    ".global haul_atomic_bpf_begin\n"
    ".global haul_atomic_bpf_end\n"
    ".hidden haul_atomic_bpf_begin\n"
    ".hidden haul_atomic_bpf_end\n"
    "haul_atomic_bpf_begin:\n"
    ".incbin \"" HAUL_BPF_OBJECT
    "\"\n"
    "haul_atomic_bpf_end:\n"
    ".popsection\n");
