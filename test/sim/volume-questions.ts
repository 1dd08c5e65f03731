/** What a simulated driver says of a volume when it is asked how full it is and how it does. */
import type { Backing } from './backing.ts';
import { type Question, STATUS } from './driver-call.ts';
import type { Fate } from './driver-fates.ts';
import type { Outcome } from './volume-service.ts';

const BYTES = 1;
const INODES = 2;
const DEGRADED = 1;

export function answerQuestion(call: Question, backing: Backing | undefined, fate: Fate['kind']): Outcome {
  if (backing === undefined) return { status: STATUS.notFound, message: 'no such volume' };
  if (call.method === 'NodeGetVolumeHealth') {
    const entry = { status: DEGRADED, reason: 'Slow', message: 'a disk of the array is being replaced' };
    const volumeId = fate === 'lie' ? 'another' : backing.handle;
    return {
      status: 0,
      reply: { volumeHealth: { volumeId, healthStatuses: isOdd(backing) ? [entry] : [] } },
    };
  }
  const total = backing.nodeBytes;
  const usage = [
    { unit: BYTES, total, used: fate === 'lie' ? -1n : total / 2n, available: total / 2n },
    { unit: INODES, total: 1_000n, used: 3n, available: 997n },
  ];
  return {
    status: 0,
    reply: { usage: backing.block ? usage.slice(0, 1) : usage, volumeCondition: undefined },
  };
}

/** Some are not well. */
function isOdd({ handle }: Backing): boolean {
  return handle.charCodeAt(handle.length - 1) % 2 === 1;
}
