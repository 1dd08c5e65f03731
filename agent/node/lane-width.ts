/** How many operations of a lane run at once. */
import { GRANT_LANE } from '../../plugins/csi/attach/attachment.ts';
import type { Config } from '../config/config.ts';

/** A whole node's volumes are asked for in three turns, by two connections to the API server. */
const GRANTS_MAX = 160;

/** What is configured for a driver counts; what a cluster grants is no work of any. */
export function laneWidthIn({
  drivers,
  operationsPerDriverMax,
}: Pick<Config, 'drivers' | 'operationsPerDriverMax'>): (lane: string) => number {
  return (lane) => {
    if (lane === GRANT_LANE) return GRANTS_MAX;
    return drivers.get(lane)?.operationsMax ?? operationsPerDriverMax;
  };
}
