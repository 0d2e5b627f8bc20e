// The converter, on streams made by hand: what becomes of branches, interrupts, faults, repeated
// string instructions and references. Copy calls: convert_copies_test.cpp.
#include <gtest/gtest.h>

#include "unit/sim/convert_fixture.hpp"

namespace bcisim::test {
namespace {

class Convert : public ConvertFixture {};

TEST_F(Convert, RegistersAndClasses) {
  StreamMaker stream;
  stream
      .at(0x1000, {0x48, 0x01, 0xc8})              // add rax, rcx
      .at(0x1003, {0x31, 0xd2})                    // xor edx, edx
      .at(0x1005, {0x48, 0x8b, 0x44, 0xcb, 0x08})  // mov rax, [rbx + 8 * rcx + 8]
      .load(0x5000)
      .at(0x100a, {0x88, 0xc8})              // mov al, cl
      .at(0x100c, {0x48, 0x0f, 0x44, 0xc1})  // cmove rax, rcx
      .at(0x1010, {0xf7, 0xf1})              // div ecx
      .at(0x1012, {0x48, 0x0f, 0xaf, 0xc1})  // imul rax, rcx
      .at(0x1016, {0x66, 0x0f, 0xfe, 0xc1})  // paddd xmm0, xmm1
      .at(0x101a, {0x0f, 0xae, 0xf0})        // mfence
      .at(0x101d, {0x0f, 0xa2})              // cpuid
      .at(0x101f, {0x0f, 0x22, 0xd8})        // mov cr3, rax
      .at(0x1022, {0xec})                    // in al, dx
      .at(0x1023, {0xc3})                    // ret
      .load(0x7000);
  run(stream.end());
  const auto expect = [&](std::size_t i, std::uint64_t reads, std::uint64_t writes,
                          InstructionClass kind) {
    const StaticInstruction& what = whole.statics[whole.contents.instructions[i].what];
    EXPECT_EQ(what.reads, reads) << i;
    EXPECT_EQ(what.writes, writes) << i;
    EXPECT_EQ(what.kind, kind) << i;
  };
  constexpr std::uint64_t rax = 1, rcx = 2, rdx = 4, rbx = 8, rsp = 16, flags = 1 << 16;
  ASSERT_EQ(whole.contents.instructions.size(), 13u);
  expect(0, rax | rcx, rax | flags, InstructionClass::simple);
  expect(1, 0, rdx | flags, InstructionClass::simple);
  expect(2, rbx | rcx, rax, InstructionClass::simple);
  expect(3, rax | rcx, rax, InstructionClass::simple);
  expect(4, rax | rcx | flags, rax, InstructionClass::simple);
  expect(5, rax | rcx | rdx, rax | rdx | flags, InstructionClass::divide);
  expect(6, rax | rcx, rax | flags, InstructionClass::multiply);
  expect(7, 3ull << register_vectors, 1ull << register_vectors, InstructionClass::floating);
  expect(8, 0, 0, InstructionClass::fence);
  EXPECT_EQ(whole.statics[9].kind, InstructionClass::serializing);
  EXPECT_EQ(whole.statics[10].kind, InstructionClass::serializing);
  EXPECT_EQ(whole.statics[11].kind, InstructionClass::serializing);
  expect(12, rsp, rsp, InstructionClass::jump);
  EXPECT_EQ(whole.statics[2].bytes, 5);
  EXPECT_EQ(whole.statics[2].address, 0x1005u);
  EXPECT_EQ(summary.kernel_instructions, 0u);
}

TEST_F(Convert, StepsAndLocks) {
  StreamMaker stream;
  stream.at(0x1000, {0x58})
      .load(0x7000)        // pop rax
      .at(0x1001, {0x5c})  // pop rsp
      .load(0x7008)
      .at(0x1002, {0xf3, 0xa4})  // rep movsb
      .load(0x5000, 1)
      .store(0x6000, 1)
      .at(0x1004, {0xac})  // lodsb
      .load(0x5001, 1)
      .at(0x1005, {0x48, 0x03, 0x24, 0x24})  // add rsp, [rsp]
      .load(0x7010)
      .at(0x1009, {0xf0, 0xff, 0x03})  // lock inc dword [rbx]
      .load(0x5000, 4)
      .store(0x5000, 4)
      .at(0x100c, {0x87, 0x03})  // xchg [rbx], eax
      .load(0x5000, 4)
      .store(0x5000, 4)
      .at(0x100e, {0x87, 0xd8})        // xchg eax, ebx
      .at(0x1010, {0xe8, 0, 0, 0, 0})  // call
      .store(0x7000)
      .at(0x1015, {0x90});
  run(stream.end());
  constexpr std::uint64_t rcx = 2, rsp = 16, rsi = 64, rdi = 128;
  const std::uint64_t steps[] = {rsp, 0, rcx | rsi | rdi, rsi, 0, 0, 0, 0, rsp, 0};
  ASSERT_EQ(whole.statics.size(), std::size(steps));
  for (std::size_t i = 0; i < std::size(steps); ++i)
    EXPECT_EQ(whole.statics[i].steps, steps[i]) << i;
  EXPECT_EQ(whole.statics[5].kind, InstructionClass::fence);
  EXPECT_EQ(whole.statics[6].kind, InstructionClass::fence);
  EXPECT_EQ(whole.statics[7].kind, InstructionClass::simple);
}

TEST_F(Convert, BranchesAreTakenOrNot) {
  StreamMaker stream;
  stream.at(0x1000, {0x74, 0x02}).at(0x1004, {0x74, 0xfa}).at(0x1000, {0x74, 0x02});
  stream.at(0x1002, {0x90}).at(0x1003, {0x90});
  run(stream.end());
  EXPECT_EQ(taken(), (std::vector<bool>{true, true, false, false, false}));
  EXPECT_EQ(summary.interrupts, 0u);
  EXPECT_EQ(whole.statics[0].kind, InstructionClass::branch);
  EXPECT_EQ(whole.statics.size(), 4u);
}

TEST_F(Convert, AnInterruptIsFound) {
  StreamMaker stream;
  stream.at(0x1000, {0x90}).at(kernel, {0x90}).at(kernel + 1, {0x48, 0xcf}).at(0x1001, {0x90});
  stream.at(0x1002, {0x74, 0x10}).at(kernel, {0x90});
  run(stream.end());
  EXPECT_EQ(whole.contents.instructions.size(), 6u);
  ASSERT_EQ(whole.contents.events.size(), 2u);
  EXPECT_EQ(whole.contents.events[0].kind, Event::Kind::interrupt);
  EXPECT_EQ(whole.contents.events[0].before, 1u);
  EXPECT_EQ(whole.contents.events[1].before, 5u);
  EXPECT_FALSE(whole.contents.instructions[4].taken);  // a branch before an interrupt
  EXPECT_EQ(summary.interrupts, 2u);
  EXPECT_EQ(summary.faulted, 0u);
  EXPECT_EQ(summary.kernel_instructions, 3u);
}

TEST_F(Convert, AFaultedInstructionCountsOnce) {
  StreamMaker stream;
  stream.at(0x1000, {0x74, 0x10}).at(0x1012, {0x48, 0x8b, 0x03});  // mov rax, [rbx]: faults
  stream.at(kernel, {0x90}).at(kernel + 1, {0x48, 0xcf});
  stream.at(0x1012, {0x48, 0x8b, 0x03}).load(0x5000).at(0x1015, {0x90});
  run(stream.end());
  ASSERT_EQ(whole.contents.instructions.size(), 5u);
  EXPECT_EQ(taken(), (std::vector<bool>{true, false, false, false, false}));
  ASSERT_EQ(whole.contents.events.size(), 1u);
  EXPECT_EQ(whole.contents.events[0].before, 1u);
  EXPECT_EQ(summary.faulted, 1u);
}

TEST_F(Convert, WhatEnteringAHandlerRefersToIsNotTheInstructions) {
  for (const bool from_user : {false, true}) {
    StreamMaker stream;
    stream.at(0x1000, {0x48, 0x8b, 0x03}).enter(from_user, 6);  // faults
    stream.at(page_fault, {0x90}).at(page_fault + 1, {0x48, 0xcf});
    stream.at(0x1000, {0x48, 0x8b, 0x03}).load(0x5000).enter(from_user, 5);  // interrupted
    stream.at(kernel, {0x90}).at(kernel + 1, {0x48, 0xcf});
    stream.at(0x1003, {0x53})
        .store(0x7ff8)
        .at(0x1004, {0xff, 0xe0})
        .enter(from_user, 5);  // jmp rax
    stream.at(kernel, {0x90});
    run(stream.end());
    EXPECT_EQ(summary.faulted, 1u);
    EXPECT_EQ(summary.interrupts, 3u);
    EXPECT_EQ(whole.contents.instructions.size(), 8u);
    EXPECT_EQ(whole.contents.references.size(), 2u);
  }
}

TEST_F(Convert, OnlyWhatLooksLikeAnEntryIsTakenOff) {
  StreamMaker stream;
  stream.at(0x1000, {0x0f, 0xae, 0x03});  // fxsave [rbx]
  for (unsigned i = 0; i < 3; ++i) stream.load(0x5000 + 4 * i, 4);
  for (unsigned i = 0; i < 2; ++i) stream.load(0x6000 + 4 * i, 4);
  for (unsigned i = 0; i < 7; ++i) stream.store(0x8000 - 8 * i);
  run(stream.at(0x1003, {0x90}).end());
  EXPECT_EQ(whole.contents.references.size(), 12u);
  EXPECT_EQ(summary.interrupts, 0u);
}

TEST_F(Convert, AReadModifyWriteThatFaultsAtItsStoreIsLeftOut) {
  StreamMaker stream;
  stream.at(0x1000, {0x48, 0x01, 0x03}).load(0x5000);  // add [rbx], rax
  stream.at(kernel, {0x90}).at(kernel + 1, {0x48, 0xcf});
  stream.at(0x1000, {0x48, 0x01, 0x03}).load(0x5000).store(0x5000);
  run(stream.end());
  ASSERT_EQ(whole.contents.instructions.size(), 3u);
  EXPECT_EQ(whole.contents.references.size(), 2u);
}

TEST_F(Convert, AnInstructionThatIsStartedAnewCountsOnce) {
  StreamMaker stream;
  stream.at(0x1000, {0x48, 0x8b, 0x03}).at(0x1000, {0x48, 0x8b, 0x03}).load(0x5000);
  stream.at(0x1003, {0x90});
  run(stream.end());
  EXPECT_EQ(whole.contents.instructions.size(), 2u);
  EXPECT_EQ(summary.interrupts, 0u);
  EXPECT_EQ(summary.faulted, 1u);
}

TEST_F(Convert, SymbolsTellInterruptsAfterReturns) {
  StreamMaker stream;
  stream.at(kernel, {0xc3}).load(0x7000).at(page_fault, {0x90}).at(page_fault + 1, {0x48, 0xcf});
  stream.at(kernel + 0x100, {0xc3})
      .load(0x7000)
      .at(page_fault + 5, {0x90});  // called by the handler
  run(stream.end());
  EXPECT_EQ(summary.interrupts, 1u);
  ASSERT_EQ(whole.contents.events.size(), 1u);
  EXPECT_EQ(whole.contents.events[0].before, 1u);
}

TEST_F(Convert, IterationsOfAStringInstructionShareADynamicInstruction) {
  StreamMaker stream;
  for (unsigned i = 0; i < 9; ++i)
    stream.at(0x1000, {0xf3, 0x48, 0xa5}).load(0x5000 + 8 * i).store(0x6000 + 8 * i);
  stream.at(0x1000, {0xf3, 0x48, 0xa5}).at(0x1003, {0x90});
  run(stream.end());
  ASSERT_EQ(whole.contents.instructions.size(), 4u);
  for (const auto& [instruction, references] : {std::pair{0u, 8u}, {1u, 8u}, {2u, 2u}}) {
    EXPECT_EQ(whole.contents.instructions[instruction].what, 0u);
    EXPECT_EQ(whole.contents.instructions[instruction].references, references);
  }
  for (unsigned i = 0; i < 8; ++i)
    EXPECT_EQ(whole.contents.references[i].is_store, i >= 4) << "loads come before stores";
  EXPECT_EQ(whole.contents.references[4].address, 0x6000u);
  EXPECT_EQ(summary.interrupts, 0u);
}

TEST_F(Convert, AFaultWithinAStringInstructionLosesItsIterationAlone) {
  StreamMaker stream;
  stream.at(0x1000, {0xf3, 0x48, 0xa5}).load(0x5000).store(0x6000);
  stream.at(0x1000, {0xf3, 0x48, 0xa5}).load(0x5008);  // its store faults
  stream.at(kernel, {0x90}).at(kernel + 1, {0x48, 0xcf});
  stream.at(0x1000, {0xf3, 0x48, 0xa5}).load(0x5008).store(0x6008).at(0x1003, {0x90});
  run(stream.end());
  EXPECT_EQ(whole.contents.instructions.size(), 5u);
  EXPECT_EQ(whole.contents.references.size(), 4u);
  EXPECT_EQ(summary.interrupts, 1u);
}

TEST_F(Convert, AnInstructionOfManyReferencesBecomesSeveral) {
  StreamMaker stream;
  stream.at(0x1000, {0x0f, 0xae, 0x03});  // fxsave [rbx]
  for (unsigned i = 0; i < 20; ++i) stream.store(0x5000 + 8 * i);
  run(stream.at(0x1003, {0x90}).end());
  ASSERT_EQ(whole.contents.instructions.size(), 4u);
  EXPECT_EQ(whole.contents.instructions[2].references, 4);
  EXPECT_EQ(whole.contents.references.size(), 20u);
}

TEST_F(Convert, AReferenceToADeviceMakesItsInstructionSerializing) {
  StreamMaker stream;
  stream.at(0x1000, {0x8b, 0x03}).refer(0xffffc90000000000, 4, false, io).at(0x1002, {0xeb, 0xfc});
  stream.at(0x1000, {0x8b, 0x03}).load(0x5000, 4).at(0x1002, {0xeb, 0xfc});
  run(stream.end());
  ASSERT_EQ(whole.contents.instructions.size(), 4u);
  EXPECT_EQ(whole.contents.instructions[0].references, 0);
  EXPECT_EQ(whole.statics[whole.contents.instructions[0].what].kind, InstructionClass::serializing);
  EXPECT_EQ(whole.contents.instructions[2].references, 1);
  EXPECT_EQ(whole.statics[whole.contents.instructions[2].what].kind, InstructionClass::simple);
  EXPECT_EQ(summary.io_references, 1u);
  EXPECT_EQ(summary.faulted, 0u);
}

TEST_F(Convert, AReferenceAcrossPagesBecomesTwo) {
  StreamMaker stream;
  stream.at(0x1000, {0x48, 0x8b, 0x03}).refer(0x6000, 8, false, 0x99000);
  stream.at(0x1003, {0x48, 0x8b, 0x03}).refer(0x5ffd, 8, false, 0x11ffd);
  run(stream.end());
  ASSERT_EQ(whole.contents.references.size(), 3u);
  EXPECT_EQ(whole.contents.instructions[1].references, 2);
  EXPECT_EQ(whole.contents.references[1].bytes, 3);
  EXPECT_EQ(whole.contents.references[1].physical, 0x11ffdu);
  EXPECT_EQ(whole.contents.references[2].address, 0x6000u);
  EXPECT_EQ(whole.contents.references[2].physical, 0x99000u);  // where it was seen
  EXPECT_EQ(whole.contents.references[2].bytes, 5);
}

TEST_F(Convert, DevicesComeBehindTheInstructionThatRan) {
  StreamMaker stream;
  stream.device(0x1000, 10, false).at(0x1000, {0x90}).device(0x2000, 1500, true);
  stream.at(0x1001, {0x90});
  run(stream.end());
  ASSERT_EQ(whole.contents.events.size(), 2u);
  EXPECT_EQ(whole.contents.events[0].before, 0u);
  EXPECT_EQ(whole.contents.events[1].before, 1u);
  EXPECT_TRUE(whole.contents.devices[1].writes);
  EXPECT_EQ(summary.device_written_bytes, 1500u);
  EXPECT_EQ(summary.device_read_bytes, 10u);
}

TEST_F(Convert, TheSamePlaceTranslatedAgainIsTheSame) {
  // As StreamMaker's, with a second id for the first place.
  Bytes again = StreamMaker().at(0x1000, {0x90}).at(0x1001, {0xeb, 0xfd}).end();
  again.resize(again.size() - 9);
  again.push_back(BCISIM_STATIC);
  put_fixed(again, std::uint32_t{2});
  put_fixed(again, std::uint64_t{0x1000});
  put_fixed(again, std::uint64_t{0x1000});
  again.insert(again.end(), {1, 0x90, BCISIM_EXEC, 2, 0, 0, 0, BCISIM_END});
  put_fixed(again, std::uint64_t{3});
  run(again);
  EXPECT_EQ(whole.statics.size(), 2u);
  EXPECT_EQ(whole.contents.instructions[2].what, 0u);
}

TEST_F(Convert, AStreamOfNothingGivesAnEmptyTrace) {
  run(StreamMaker().end());
  EXPECT_TRUE(whole.contents.instructions.empty());
}

TEST_F(Convert, ACutStreamIsRefusedAndLeavesNoFile) {
  StreamMaker stream;
  stream.at(0x1000, {0x48, 0x8b, 0x03}).load(0x5000).device(0x1000, 5, true).at(0x1003, {0x90});
  const Bytes whole_stream = stream.end();
  for (std::size_t length = 0; length < whole_stream.size(); ++length) {
    const std::string error =
        error_of(Bytes(whole_stream.begin(), whole_stream.begin() + static_cast<long>(length)));
    ASSERT_NE(error.find(length == 0 ? "s, offset 0: the stream is empty"
                                     : "s, offset " + std::to_string(length) +
                                           ": the stream ends too early"),
              std::string::npos)
        << error;
    ASSERT_EQ(folder.files(), 1);  // the symbols
  }
}

TEST_F(Convert, EachFaultOfAStreamHasItsMessage) {
  const Bytes good = StreamMaker().at(0x1000, {0x90}).at(0x1001, {0x90}).load(0x5000).end();
  const auto with = [&](std::size_t at, std::uint8_t byte) {
    Bytes bad = good;
    bad[at] = byte;
    return error_of(bad);
  };
  EXPECT_EQ(error_of(good), "none");
  EXPECT_EQ(with(0, 'X'),
            "s, offset 0: this is no stream of the tracer; convert reads what the "
            "tracer writes");
  EXPECT_EQ(with(9, 7),
            "s, offset 9: the stream is of version 7, this bcisim reads version 1; use the tracer "
            "that was built with it");
  EXPECT_EQ(with(13, 77),
            "s, offset 13: the stream is damaged, a record has the unknown tag 77; trace again");
  EXPECT_NE(with(14, 1).find("an id out of turn"), std::string::npos);
  EXPECT_NE(with(34, 16).find("not of 1 to 15 bytes"), std::string::npos);
  EXPECT_NE(with(37, 9).find("executed that has not come before"), std::string::npos);
  EXPECT_NE(with(good.size() - 8, 9).find("it has 2 executions and says 9"), std::string::npos);
  EXPECT_NE(with(good.size() - 10, 2).find("neither a load nor a store"), std::string::npos);
  EXPECT_NE(with(good.size() - 12, 0).find("not of 1 to 512 bytes"), std::string::npos);
  EXPECT_NE(with(good.size() - 20, 1).find("not as far into its page"), std::string::npos);
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_NE(error_of(longer).find("something follows its end"), std::string::npos);
}

TEST_F(Convert, ADeviceReachesTheLastByteThatATraceCanHoldAndNoFurther) {
  const std::uint64_t last = ~std::uint64_t{0} - 64;
  EXPECT_EQ(error_of(StreamMaker().at(0x1000, {0x90}).device(last, 64, true).end()), "none");
  for (const std::uint64_t beyond : {last + 1, ~std::uint64_t{0}}) {
    const Bytes stream = StreamMaker().at(0x1000, {0x90}).device(beyond, 64, true).end();
    EXPECT_NE(error_of(stream).find("a device refers to memory beyond 2^64"), std::string::npos);
  }
}

TEST_F(Convert, SymbolsMustBeReadable) {
  symbols = folder.path("none");
  EXPECT_NE(error_of(StreamMaker().end()).find("name a copy of /proc/kallsyms"), std::string::npos);
  folder.write("zero", "0000000000000000 T memcpy\n");
  symbols = folder.path("zero");
  EXPECT_NE(error_of(StreamMaker().end()).find("holds no address but 0"), std::string::npos);
  folder.write("bad", "ffffffff81000000 T memcpy\nhello\n");
  symbols = folder.path("bad");
  EXPECT_NE(error_of(StreamMaker().end()).find("line 2: is not of the form"), std::string::npos);
}

}  // namespace
}  // namespace bcisim::test
