/** Sessions of iSCSI and their disks, as sysfs shows them. Path brokers only. */
import { namesIn, readOrNothing } from './kernel-text.ts';
import { failErrno } from '../../errno.ts';
import { ok, type Result } from '../../failure.ts';
import type { AbsolutePath, DeviceNumber } from '../../host.ts';
import type { IscsiDisk, IscsiSession } from '../../block-devices.ts';

const SYSFS = '/sys';
const SESSION = /^session([0-9]+)$/;
/** `<host>:<channel>:<target>:<lun>` */
const PLACE = /^[0-9]+:[0-9]+:[0-9]+:([0-9]+)$/;
const NUMBER = /^[0-9]+:[0-9]+$/;
const NAME = /^[A-Za-z0-9!_-]+$/;
const MULTIPATH = 'mpath-';

/** As `IscsiSessions.readIscsiSessions`. What goes while it is read is left out, with all of its session. */
export function readIscsiSessions(sysfs = SYSFS): Result<readonly IscsiSession[]> {
  try {
    const sessions = namesIn(`${sysfs}/class/iscsi_session`).flatMap((name) => {
      const session = readSession(sysfs, name);
      return session === undefined ? [] : [session];
    });
    return ok(sessions.sort((a, b) => a.number - b.number));
  } catch (error) {
    return failErrno(error, 'read the sessions of iSCSI', 'none');
  }
}

function readSession(sysfs: string, name: string): IscsiSession | undefined {
  const number = SESSION.exec(name)?.[1];
  const directory = `${sysfs}/class/iscsi_session/${name}`;
  const iqn = textOf(`${directory}/targetname`);
  const iface = textOf(`${directory}/ifacename`) ?? 'default';
  const portal = portalOf(`${sysfs}/class/iscsi_connection/connection${number}:0`);
  if (number === undefined || iqn === undefined || portal === undefined) return undefined;
  const isLoggedIn = textOf(`${directory}/state`) === 'LOGGED_IN';
  const disks = namesIn(`${directory}/device`)
    .filter((one) => one.startsWith('target'))
    .flatMap((target) => disksOf(sysfs, `${directory}/device/${target}`));
  return { number: Number(number), iqn, iface, portal, isLoggedIn, disks };
}

/** As it was asked for: where the portal has sent the login to another one, that is another attribute. */
function portalOf(connection: string): string | undefined {
  const address = textOf(`${connection}/persistent_address`);
  const port = textOf(`${connection}/persistent_port`);
  if (address === undefined || port === undefined) return undefined;
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}

function disksOf(sysfs: string, target: string): readonly IscsiDisk[] {
  return namesIn(target).flatMap((place) => {
    const lun = PLACE.exec(place)?.[1];
    if (lun === undefined) return [];
    return namesIn(`${target}/${place}/block`).flatMap((name) => {
      const device = numberOf(`${target}/${place}/block/${name}/dev`);
      if (device === undefined || !NAME.test(name)) return [];
      const map = mapOver(sysfs, name);
      return [{ lun: Number(lun), node: nodeOf(name), device, ...(map === undefined ? {} : { map }) }];
    });
  });
}

function mapOver(sysfs: string, name: string): IscsiDisk['map'] {
  for (const holder of namesIn(`${sysfs}/block/${name}/holders`)) {
    if (textOf(`${sysfs}/block/${holder}/dm/uuid`)?.startsWith(MULTIPATH) !== true) continue;
    const device = numberOf(`${sysfs}/block/${holder}/dev`);
    if (device !== undefined && NAME.test(holder)) return { node: nodeOf(holder), device };
  }
  return undefined;
}

/** A slash in a name of a device is an exclamation mark in sysfs. */
function nodeOf(name: string): AbsolutePath {
  return `/dev/${name.replaceAll('!', '/')}` as AbsolutePath;
}

function numberOf(file: string): DeviceNumber | undefined {
  const number = textOf(file);
  return number !== undefined && NUMBER.test(number) ? (number as DeviceNumber) : undefined;
}

function textOf(file: string): string | undefined {
  const text = readOrNothing(file)?.trim();
  return text === undefined || text === '' || text === '<NULL>' || text === '(null)' ? undefined : text;
}
