/** What iscsiadm(8) and multipath(8) are told, how they say what went wrong, and the text of their records. Pure. */
import type { AbsolutePath } from '../absolute-path.ts';
import type { FailureCode } from '../failure.ts';
import type { IscsiSettings, IscsiWay } from '../block-devices.ts';

type Argv = readonly string[];

/** The record of a question is called by its portal alone. */
function discoveryOf({ portal }: IscsiWay): Argv {
  return ['-m', 'discoverydb', '-t', 'sendtargets', '-p', portal];
}

export function newDiscovery(way: IscsiWay): Argv {
  return [...discoveryOf(way), '-I', way.iface, '-o', 'new'];
}

/** No node of the answer is written down: most portals tell of targets that nobody here wants. */
export function discover(way: IscsiWay): Argv {
  return [...discoveryOf(way), '-I', way.iface, '-o', 'nonpersistent', '--discover'];
}

export function deleteDiscovery(way: IscsiWay): Argv {
  return [...discoveryOf(way), '-o', 'delete'];
}

function nodeOf({ iqn, portal, iface }: IscsiWay): Argv {
  return ['-m', 'node', '-T', iqn, '-p', portal, '-I', iface];
}

export function newNode(way: IscsiWay): Argv {
  return [...nodeOf(way), '-o', 'new'];
}

export function deleteNode(way: IscsiWay): Argv {
  return [...nodeOf(way), '-o', 'delete'];
}

export function logIn(way: IscsiWay): Argv {
  return [...nodeOf(way), '--login'];
}

export function logOut(sessionNumber: number): Argv {
  return ['-m', 'session', '-r', String(sessionNumber), '--logout'];
}

export function scan(sessionNumber: number): Argv {
  return ['-m', 'session', '-r', String(sessionNumber), '--rescan'];
}

/** What iscsiadm(8) exits with (ISCSI_ERR_…). */
export const EXIT = { sessionExists: 15, nothingFound: 21 } as const;

/** Somebody answered, and said no: a fatal error of a login, a login that was denied, and an unknown target. */
const REFUSED: ReadonlySet<number | undefined> = new Set([5, 19, 24, EXIT.nothingFound]);
/** Nobody answered: of the transport, in time, or the login took too long. */
const SILENT: ReadonlySet<number | undefined> = new Set([4, 8, 11]);

export function codeOfExit(exitCode: number | undefined): FailureCode {
  if (REFUSED.has(exitCode)) return 'target-refused';
  return SILENT.has(exitCode) ? 'target-unreachable' : 'input-output';
}

/** The targets that a portal has told of: a line each, `portal,group iqn`. */
export function targetsIn(stdout: string): readonly string[] {
  return stdout.split('\n').flatMap((line) => {
    const [, iqn] = line.trim().split(' ');
    return iqn === undefined ? [] : [iqn];
  });
}

/**
 * The daemon gives up by itself before iscsiadm(8) is killed, so that no login comes after we have given it up. Ours is
 * begun by us alone: never at boot.
 */
export const SESSION_SETTINGS: IscsiSettings = [
  ['node.startup', 'manual'],
  ['node.conn[0].startup', 'manual'],
  ['node.session.initial_login_retry_max', '2'],
  ['node.conn[0].timeo.login_timeout', '10'],
];

export const DISCOVERY_SETTINGS: IscsiSettings = [
  ['discovery.startup', 'manual'],
  ['discovery.sendtargets.reopen_max', '1'],
  ['discovery.sendtargets.timeo.login_timeout', '10'],
];

/** Where distributions have the database: Debian and others, Fedora and others. */
export const DATABASES: readonly [AbsolutePath, ...AbsolutePath[]] = [
  '/etc/iscsi' as AbsolutePath,
  '/var/lib/iscsi' as AbsolutePath,
];

export const LOGIN_MS = 45_000;
export const LOGOUT_MS = 60_000;
export const DISCOVERY_MS = 45_000;
/** What only reads and writes records. */
export const RECORD_MS = 15_000;
export const SCAN_MS = 30_000;

/** `host:port` as it is in names of records, `host,port`: an address of IPv6 has no brackets there. */
export function recordNameOf(portal: string): string {
  const at = portal.lastIndexOf(':');
  return `${portal.slice(0, at).replace(/^\[|\]$/g, '')},${portal.slice(at + 1)}`;
}

const END = '# END RECORD';
/** A line that iscsiadm(8) passes over, and leaves out when it writes the record itself. */
const OURS = '# made by mooring for one question';
/** What differs from a record that was just made, and somebody has set. */
const SET_BY_SOMEBODY = / = (?:automatic|onboot|CHAP|Yes)$/m;

/** The record of a question is ours, or is as good as new. */
export function isSpare(record: string): boolean {
  return record.split('\n').includes(OURS) || !SET_BY_SOMEBODY.test(record);
}

/** As `withSettings`, of a record that goes with our question. */
export function withQuestion(record: string, settings: IscsiSettings): string {
  return withLines(withSettings(record, settings), [OURS]);
}

/** A record with these values; a name that it lacks is added, as open-iscsi leaves out what is empty. */
export function withSettings(record: string, settings: IscsiSettings): string {
  const wanted = new Map(settings);
  const lines = record.split('\n').map((line) => {
    const name = line.split(' = ', 1)[0] ?? '';
    const value = wanted.get(name);
    if (value === undefined) return line;
    wanted.delete(name);
    return `${name} = ${value}`;
  });
  const more = [...wanted].map(([name, value]) => `${name} = ${value}`);
  return withLines(lines.join('\n'), more);
}

function withLines(record: string, more: readonly string[]): string {
  const lines = record.split('\n');
  const end = lines.indexOf(END);
  lines.splice(end < 0 ? lines.length : end, 0, ...more);
  return lines.join('\n');
}
