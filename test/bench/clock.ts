/** CLOCK_MONOTONIC in milliseconds: the same in every process of the machine. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
