/** An address to listen on, as the configuration has it. Pure. */
import { isIP } from 'node:net';

/** Where to listen: an address of this machine, not a name, and a port from 1 to 65,535. */
export interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

const PORT_MAX = 65_535;
const LISTEN_TEXT = /^(?:\[([^\]]+)\]|([^:[\]]+)):([1-9][0-9]{0,4})$/;

/** `127.0.0.1:9112` or `[::1]:9112`; undefined for anything else. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const [, six, four, digits] = LISTEN_TEXT.exec(text) ?? [];
  const port = Number(digits);
  const address = six ?? four ?? '';
  const isRight = six === undefined ? isIP(address) === 4 : isIP(address) === 6;
  return isRight && port <= PORT_MAX ? { address, port } : undefined;
}
