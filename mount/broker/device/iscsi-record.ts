/**
 * Settings in a record of open-iscsi. They are written here and not by iscsiadm(8), which takes a value only from its
 * command line, where everybody reads it. Path brokers only.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeSync,
} from 'node:fs';
import { namesIn } from './kernel-text.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, fail, ok, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';
import { DATABASES, isSpare, withQuestion, withSettings } from '../../iscsi/iscsi-tools.ts';
import type { IscsiSettings } from '../../block-devices.ts';
import { childIn, withDirectory } from '../path/path-walk.ts';

/** Which record: below one of the databases, by the name of its portal. */
export interface IscsiRecord {
  /** Told when the call is lost. */
  readonly path: AbsolutePath;
  /** `send_targets`, or `nodes` and the name of a target, below the directory of a database. */
  readonly folder: readonly string[];
  /** `host,port` */
  readonly portal: string;
  /** The file, where the portal has a directory: of an interface, or of a question. */
  readonly leaf: string;
  readonly settings: IscsiSettings;
  /** It is of a question, which is ours, and goes with it. */
  readonly isOurs?: true;
}

/** Whose the record of a question is: deleted, it would take all nodes along that somebody has found by it. */
export type QuestionOwner = 'nobody' | 'ours' | 'somebody';

const RECORD_BYTES_MAX = 65_536;
const OWNER_ONLY = 0o600;

/**
 * Written in place: another file beside it would be one more record to iscsiadm(8). One that was cut short is made anew
 * before the next login.
 */
export function writeIscsiRecord(
  record: IscsiRecord,
  databases: readonly AbsolutePath[] = DATABASES,
): Result<void> {
  for (const database of databases) {
    const directory = [database, ...record.folder].join('/') as AbsolutePath;
    const written = writeBelow(directory, record);
    if (written.ok || written.failure.code !== 'path-missing') return written;
  }
  const message = `iscsiadm has left no record of the portal ${record.portal} in ${databases.join(' or ')}`;
  return fail({ code: 'path-missing', message, effect: 'none' });
}

/** What was made a moment ago, and tells of nothing, is as good as ours: a crash has left it. */
export function ownerOfQuestion(
  { folder, portal, leaf }: Omit<IscsiRecord, 'settings'>,
  databases: readonly AbsolutePath[] = DATABASES,
): Result<QuestionOwner> {
  for (const database of databases) {
    const directory = [database, ...folder, portal].join('/') as AbsolutePath;
    const owner = withDirectory(directory, (place): Result<QuestionOwner> => {
      const names = namesIn(place.path);
      if (names.length === 0) return ok('nobody');
      // A link to each node that it has found.
      if (names.some((name) => name !== leaf)) return ok('somebody');
      try {
        return opened(childIn(place, leaf).path, (_, text) => ok(isSpare(text) ? 'ours' : 'somebody'));
      } catch (error) {
        return failErrno(error, `read the record of ${portal}`, 'none');
      }
    });
    if (owner.ok || owner.failure.code !== 'path-missing') return owner;
  }
  return ok('nobody');
}

function writeBelow(directory: AbsolutePath, record: IscsiRecord): Result<void> {
  const { portal, leaf } = record;
  return withDirectory(directory, (place) => {
    const name = namesIn(place.path).find((one) => one === portal || one.startsWith(`${portal},`));
    if (name === undefined) return fail({ code: 'path-missing', message: portal, effect: 'none' });
    try {
      return rewrite(childIn(place, name).path, record);
    } catch (error) {
      if (errnoOf(error) !== 'EISDIR') return failErrno(error, `write the record of ${portal}`, 'unknown');
    }
    return withDirectory(`${directory}/${name}` as AbsolutePath, (inner) => {
      try {
        return rewrite(childIn(inner, leaf).path, record);
      } catch (error) {
        return failErrno(error, `write the record of ${portal}`, 'unknown');
      }
    });
  });
}

function rewrite(path: string, { settings, isOurs }: IscsiRecord): Result<void> {
  return opened(path, (descriptor, text) => {
    // Before any secret is in it.
    fchmodSync(descriptor, OWNER_ONLY);
    const content = Buffer.from((isOurs ? withQuestion : withSettings)(text, settings));
    ftruncateSync(descriptor, 0);
    for (let at = 0; at < content.length; ) at += writeSync(descriptor, content, at, content.length - at, at);
    return done;
  });
}

function opened<T>(path: string, use: (descriptor: number, text: string) => Result<T>): Result<T> {
  const descriptor = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const facts = fstatSync(descriptor);
    if (facts.isFile() && facts.size <= RECORD_BYTES_MAX)
      return use(descriptor, readFileSync(descriptor, 'utf8'));
    const message = 'a record of open-iscsi is no small file';
    return fail({ code: 'path-wrong-kind', message, effect: 'none' });
  } finally {
    closeSync(descriptor);
  }
}
