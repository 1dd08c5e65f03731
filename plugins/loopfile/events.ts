/** What the driver tells the person who runs it: one JSON line per event, never a secret. */

export type Facts = Readonly<Record<string, string | number | boolean | undefined>>;

/** Event names are constant; what varies is a fact. */
export type Report = (event: string, facts: Facts) => void;

/** Writes to standard error, where the journal picks it up. */
export const reportOnStderr: Report = (event, facts) => {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), event, ...facts })}\n`);
};
