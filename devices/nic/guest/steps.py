"""What runs in the guest."""

import dataclasses
import shlex

CONFORMANCE, END_TO_END, PLUGIN = "tests/haul_conformance_tests", "tests/e2e_nic_test", "tests/e2e_nic_plugin_test"
BY_VFIO = "tests/e2e_nic_vfio_test"
COMMAND = "bin/haul"
ORDINARY, JUMBO = 1500, 9000  # bytes of a frame


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    program: str
    mtu: int  # of the card, before the program
    environment: tuple  # (NAME, VALUE)
    arguments: tuple = ()
    # GoogleTest's filters: of all that the step runs, and of a quick run's part; "": none of it.
    tests: str = "*"
    quick_tests: str = ""
    counting: bool = False  # a figure, in a guest whose clock counts instructions
    iommu: bool = False  # by vfio: the card is the program's

    def _card(self):
        """What the card is before the program and after it, in words of start.sh."""
        return ("card_to_programs", "card_to_kernel") if self.iommu else (f"frames_of {self.mtu}", "")

    def script(self, quick):
        """The lines of steps.sh."""
        words = [f"--gtest_filter={self.quick_tests if quick else self.tests}"] if not self.counting else []
        command = ["env", *(f"{name}={value}" for name, value in self.environment),
                   f"/haul/bin/{self.program.rsplit('/', maxsplit=1)[-1]}", *self.arguments, *words]
        verb = "figure" if self.counting else "step"
        before, after = self._card()
        return f"{before}\n{verb} {shlex.quote(self.name)} {shlex.join(command)}\n{after}\n"


def _conformance(way, mtu, quick_tests=""):
    return Step(f"conformance, {way}, frames of {mtu}", CONFORMANCE, mtu, (("HAUL_ENGINE_NIC", f"{way} eth0"),),
                tests="*nic*", quick_tests=quick_tests)


_FIGURE = ("bench", "receive-overhead", "--engine", "nic", "--quick", "--sizes", "4K,16K,64K")


def _figure(way, mtu):
    environment = (("HAUL_ENGINE_NIC", f"{way} eth0"), ("HAUL_TUNE_BACKGROUND", "off"))
    return Step(f"figure 1, {way}, frames of {mtu}", COMMAND, mtu, environment, _FIGURE, counting=True)


# The card's place. (Frames are as long as the card takes: no mtu is set.)
_CARD = "0000:00:03.0"


def _by_vfio(name, program, environment, **more):
    return Step(f"{name}, vfio", program, 0, environment, iommu=True, **more)


def _figure_by_vfio(words):
    environment = (("HAUL_ENGINE_NIC", f"vfio {_CARD}{words}"), ("HAUL_TUNE_BACKGROUND", "off"))
    sizes = (*_FIGURE[:-1], f"{_FIGURE[-1]},256K,1M")
    return _by_vfio(f"figure 1{words}", COMMAND, environment, arguments=sizes, counting=True)


# These tests set the card's frames themselves.
_PORT = (("E2E_NIC_PORT", "eth0"),)
# By xdp each of the suite's small pieces is registered anew, which takes the guest 60 ms.
_FEW_REGISTRATIONS = "*Contract*/nic:*.LargePieces/nic*:*.OverlappingRanges*/nic:*.AreShown*/nic"
STEPS = (
    _conformance("packet", ORDINARY, "*nic*-*.NeverRunAhead*"),
    _conformance("packet", JUMBO),
    _conformance("xdp", ORDINARY, _FEW_REGISTRATIONS),
    _conformance("xdp", JUMBO),
    Step("the plug-in", PLUGIN, ORDINARY, _PORT,
         quick_tests="*.PlacesExactlyByOrdinaryFrames:*.PlacesExactlyWhere*:*.SaysWhatIsGood*"),
    Step("libhaul", END_TO_END, ORDINARY, _PORT, quick_tests="*.CopiesThroughPorts*/1:*.LosesNothing*/1"),
    _figure("packet", ORDINARY),
    _figure("packet", JUMBO),
    _by_vfio("conformance", CONFORMANCE, (("HAUL_ENGINE_NIC", f"vfio {_CARD}"),), tests="*nic*",
             quick_tests="*Contract*/nic*:*.LargePieces/nic*"),
    _by_vfio("conformance, plugged", CONFORMANCE, (("HAUL_ENGINE_NIC", f"vfio plugged {_CARD}"),), tests="*nic*"),
    _by_vfio("the plug-in and libhaul", BY_VFIO, (("E2E_NIC_VFIO", _CARD),), tests="*Vfio*",
             quick_tests="*.MovesWhatIsRegisteredAlone:*.SaysWhyNot"),
    _figure_by_vfio(""),
    _figure_by_vfio(" plugged"),
)
