/** What a broker says when it is asked about `/`, and what is said when it is lost. */
import { fail, type Result } from '../../../mount/failure.ts';
import type { PathFacts } from '../../../mount/host.ts';

export const ROOT_FACTS: PathFacts = {
  kind: 'directory',
  mode: 0o755,
  uid: 0,
  gid: 0,
  inode: 2,
  sizeBytes: 0,
  modifiedMs: 0,
};

export const LOST: Result<never> = fail({ code: 'broker-lost', message: 'gone', effect: 'none' });
