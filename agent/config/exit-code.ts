/** Exit codes of `mooring`: 0, 1, 2 and 124 by custom, 75 and 78 by sysexits(3); the unit file names some of them. */
export const EXIT_CODES = {
  ok: 0,
  /** No answer, or the agent could not start. */
  failure: 1,
  /** The command line was not understood. */
  usage: 2,
  /** What was planned would take a volume from a pod that is wanted. */
  disturbs: 3,
  /** Another agent holds the root: trying again later may help. */
  alreadyRunning: 75,
  /** The configuration, or where the agent was started: trying again does not help. */
  configuration: 78,
  /** What was waited for did not come in time, as of timeout(1). */
  timeout: 124,
} as const;
