/** All tests on a node in a virtual machine, in one process: they share a machine, whose first start costs a minute. */
import './volumes.ts';
import './power.ts';
