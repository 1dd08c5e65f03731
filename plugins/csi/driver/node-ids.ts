/** The node id that each driver said last, so that another one is told: volumes are attached to the one of before. */
import { shown } from '../wire/status.ts';

/** Those that registered last stay: names come from anybody who registers, and there must not be ever more of them. */
const NODE_IDS_MAX = 1_024;

export interface NodeIds {
  /** Remembers the id; the sentence says that the driver had another one before. */
  learn(driver: string, nodeId: string): string | undefined;
}

export function createNodeIds(): NodeIds {
  const ids = new Map<string, string>();
  return {
    learn: (driver, nodeId) => {
      const before = ids.get(driver);
      ids.delete(driver);
      ids.set(driver, nodeId);
      const [oldest] = ids.keys();
      if (ids.size > NODE_IDS_MAX && oldest !== undefined) ids.delete(oldest);
      if (before === undefined || before === nodeId) return undefined;
      return `node id changed from "${shown(before)}" to "${shown(nodeId)}"`;
    },
  };
}
