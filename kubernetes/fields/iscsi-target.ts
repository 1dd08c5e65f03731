/** Which disk of which target, as people write it. A portal is a server, and no option. */
import type { FieldReader } from './field-reader.ts';
import { serverOf } from './nfs-export.ts';

/** Portals are `host:port`, in small letters, an address of IPv6 in brackets. */
export interface IscsiTarget {
  readonly portal: string;
  readonly portals: readonly string[];
  readonly iqn: string;
  readonly lun: number;
  readonly iface: string;
}

const DEFAULT_PORT = 3260;
const PORTALS_MAX = 16;
const LUN_MAX = 255;
const IQN = /^iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+(?::[^,;*&$|\s/\p{Cc}]+)?$/u;
const EUI_OR_NAA = /^(?:eui\.[0-9A-Fa-f]{16}|naa\.[0-9A-Fa-f]{16}(?:[0-9A-Fa-f]{16})?)$/;
const INTERFACE = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$/;
/** The name of a directory of the kubelet's, which has portal, target and LUN in it, has as many. */
const NAME_BYTES_MAX = 255;
const ROOM_FOR_LUN = '--lun-255'.length;
const RIGHT_PORTAL =
  'the name or address of a portal, with its port if that is not 3260, such as 10.0.0.1:3260';
const RIGHT_IQN = 'the name of a target: iqn.<year>-<month>.<domain>:<name>, eui.… or naa.…';

export function readIscsiTarget(reader: FieldReader): IscsiTarget {
  const written = reader
    .key('targetPortal')
    .requiredText((text) => portalOf(text) !== undefined, RIGHT_PORTAL);
  const portal = portalOf(written) ?? '';
  const more = reader.key('portals');
  const portals = more
    .list()
    .map((one) => portalOf(one.requiredText((text) => portalOf(text) !== undefined, RIGHT_PORTAL)));
  if (portals.length > PORTALS_MAX)
    more.refuse(`has ${portals.length} portals; expected at most ${PORTALS_MAX}`);
  const name = reader.key('iqn');
  const iqn = name.requiredText((text) => isTargetName(text), RIGHT_IQN);
  if (Buffer.byteLength(portal) + Buffer.byteLength(iqn) + ROOM_FOR_LUN > NAME_BYTES_MAX)
    name.refuse(
      `is too long beside its portal; expected at most ${NAME_BYTES_MAX - ROOM_FOR_LUN} bytes of both`,
    );
  const lun = reader.key('lun');
  if (!lun.present) lun.refuse(`is missing; expected a number from 0 to ${LUN_MAX}`);
  return {
    portal,
    portals: [...new Set(portals.flatMap((one) => (one === undefined || one === portal ? [] : [one])))],
    iqn,
    lun: lun.integer(0, LUN_MAX, `a number from 0 to ${LUN_MAX}`) ?? 0,
    iface:
      reader
        .key('iscsiInterface')
        .text(
          (text) => text === '' || INTERFACE.test(text),
          'the name of an interface of open-iscsi, such as default',
        ) || 'default',
  };
}

function isTargetName(text: string): boolean {
  return IQN.test(text) || EUI_OR_NAA.test(text);
}

function portalOf(text: string): string | undefined {
  const [, host = text, port] =
    /^(.*[^:]):([0-9]{1,5})$/.exec(text.includes('::') && !text.startsWith('[') ? '' : text) ?? [];
  const server = serverOf(host)?.toLowerCase();
  const number = port === undefined ? DEFAULT_PORT : Number(port);
  return server === undefined || number < 1 || number > 65_535 ? undefined : `${server}:${number}`;
}
