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
import { done, fail, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';
import { DATABASES, withSettings } from '../../iscsi/iscsi-tools.ts';
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
}

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

function writeBelow(directory: AbsolutePath, { portal, leaf, settings }: IscsiRecord): Result<void> {
  return withDirectory(directory, (place) => {
    const name = namesIn(place.path).find((one) => one === portal || one.startsWith(`${portal},`));
    if (name === undefined) return fail({ code: 'path-missing', message: portal, effect: 'none' });
    try {
      return rewrite(childIn(place, name).path, settings);
    } catch (error) {
      if (errnoOf(error) !== 'EISDIR') return failErrno(error, `write the record of ${portal}`, 'unknown');
    }
    return withDirectory(`${directory}/${name}` as AbsolutePath, (inner) => {
      try {
        return rewrite(childIn(inner, leaf).path, settings);
      } catch (error) {
        return failErrno(error, `write the record of ${portal}`, 'unknown');
      }
    });
  });
}

function rewrite(path: string, settings: IscsiSettings): Result<void> {
  const descriptor = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const facts = fstatSync(descriptor);
    if (!facts.isFile() || facts.size > RECORD_BYTES_MAX)
      return fail({
        code: 'path-wrong-kind',
        message: 'a record of open-iscsi is no small file',
        effect: 'none',
      });
    // Before any secret is in it.
    fchmodSync(descriptor, OWNER_ONLY);
    const content = Buffer.from(withSettings(readFileSync(descriptor, 'utf8'), settings));
    ftruncateSync(descriptor, 0);
    for (let at = 0; at < content.length; ) at += writeSync(descriptor, content, at, content.length - at, at);
    return done;
  } finally {
    closeSync(descriptor);
  }
}
