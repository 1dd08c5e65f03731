/** `mooring quarantine list|add|clear`: asks the agent, says what it means and what happens next. */
import type { QuarantineChangeDocument } from '../status/quarantine-document.ts';
import { paragraph, quarantineText } from './quarantine-text.ts';
import { askAndShow, complain, type Screen, type Shown } from './show.ts';
import type { Look } from '../../mount/text/table.ts';

const PATH = '/v1/quarantine';

export interface QuarantineOptions {
  readonly socket: string;
  readonly output: 'table' | 'json';
}

export function listQuarantine({ socket, output }: QuarantineOptions, screen: Screen): Promise<Shown> {
  return askAndShow({ socket, path: PATH, kind: 'Quarantine', output, text: quarantineText }, screen);
}

export function addToQuarantine(
  volume: string,
  { socket, output }: QuarantineOptions,
  screen: Screen,
): Promise<Shown> {
  const change = { method: 'POST', body: { volume } } as const;
  return askAndShow({ socket, path: PATH, output, change, ...CHANGE }, screen);
}

const CLEAR_MEANS =
  'Clearing says, on your word and without any proof, that nobody on this node writes to the volume any more. ' +
  'If another node has it and something here still writes, its data is lost. A volume that is clean leaves ' +
  'quarantine by itself ("mooring quarantine list" says what it waits for). Nothing was done; ' +
  'to do it all the same, say it again with --yes.';

/** Without `yes` only what it means is said, and that is a failure: nothing was done. */
export async function clearQuarantine(
  volume: string,
  { socket, output, yes }: QuarantineOptions & { readonly yes: boolean },
  screen: Screen,
): Promise<Shown> {
  if (!yes) return complain(CLEAR_MEANS, screen);
  const path = `${PATH}?volume=${encodeURIComponent(volume)}`;
  return askAndShow({ socket, path, output, change: { method: 'DELETE' }, ...CHANGE }, screen);
}

const HEADLINES = {
  added: 'is in quarantine',
  unchanged: 'was in quarantine already',
  cleared: 'is out of quarantine, without proof',
} as const satisfies Record<QuarantineChangeDocument['change'], string>;

function changeText({ volume, change, next }: QuarantineChangeDocument, look: Look): string {
  return paragraph(`Volume ${volume.name} ${HEADLINES[change]}.`, look, true) + paragraph(next, look);
}

const CHANGE = { kind: 'QuarantineChange', text: changeText };
