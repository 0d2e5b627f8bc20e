// Executes the mark, an instruction that does nothing and that nothing else uses: the tracer's
// plugin
// (../plugin/plugin.c) takes it as the sign that the load runs steadily and recording may begin.
// It needs no C library, so that it runs in any guest and adds a handful of instructions.
__attribute__((noreturn)) void _start(void) {
  __asm__ volatile(
      "nopl 0x73696362(%rax)\n\t"
      "mov $60, %eax\n\t"  // exit(0)
      "xor %edi, %edi\n\t"
      "syscall");
  __builtin_unreachable();
}
