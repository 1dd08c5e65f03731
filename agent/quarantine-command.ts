/** `mooring quarantine list|add|clear`: asks the agent, says what it means and what happens next. */
import { changeAtAgent, getFromAgent } from './api-client.ts';
import type { QuarantineChangeDocument, QuarantineDocument } from './quarantine-document.ts';
import { paragraph, quarantineText } from './quarantine-text.ts';
import { complain, json, type Screen, type Shown } from './show.ts';

const TIMEOUT_MS = 10_000;
/** A change is answered when it is on disk, and a disk may be slow. */
const CHANGE_TIMEOUT_MS = 30_000;
const PATH = '/v1/quarantine';

export interface QuarantineOptions {
  readonly socket: string;
  readonly output: 'table' | 'json';
}

export async function listQuarantine({ socket, output }: QuarantineOptions, screen: Screen): Promise<Shown> {
  const asked = { socket, path: PATH, timeoutMs: TIMEOUT_MS, kind: 'Quarantine' };
  const answer = await getFromAgent<QuarantineDocument>(asked);
  if (answer.kind !== 'ok') return complain(answer.message, screen);
  screen.write(output === 'json' ? json(answer.body) : quarantineText(answer.body, screen.look()));
  return true;
}

export async function addToQuarantine(
  volume: string,
  { socket, output }: QuarantineOptions,
  screen: Screen,
): Promise<Shown> {
  const answer = await changeAtAgent<QuarantineChangeDocument>({
    socket,
    path: PATH,
    timeoutMs: CHANGE_TIMEOUT_MS,
    kind: 'QuarantineChange',
    method: 'POST',
    body: { volume },
  });
  if (answer.kind !== 'ok') return complain(answer.message, screen);
  return showChange(answer.body, output, screen);
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
  const answer = await changeAtAgent<QuarantineChangeDocument>({
    socket,
    path: `${PATH}?volume=${encodeURIComponent(volume)}`,
    timeoutMs: CHANGE_TIMEOUT_MS,
    kind: 'QuarantineChange',
    method: 'DELETE',
  });
  if (answer.kind !== 'ok') return complain(answer.message, screen);
  return showChange(answer.body, output, screen);
}

const HEADLINES = {
  added: 'is in quarantine',
  unchanged: 'was in quarantine already',
  cleared: 'is out of quarantine, without proof',
} as const satisfies Record<QuarantineChangeDocument['change'], string>;

function showChange(
  document: QuarantineChangeDocument,
  output: QuarantineOptions['output'],
  screen: Screen,
): Shown {
  const look = screen.look();
  const { volume, change, next } = document;
  if (output === 'json') screen.write(json(document));
  else
    screen.write(
      paragraph(`Volume ${volume.name} ${HEADLINES[change]}.`, look, true) + paragraph(next, look),
    );
  return true;
}
