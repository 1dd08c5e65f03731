/** Running a tool on a loop device while it is held open: what it shows then is what the tool acts on. */
import { constants } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { failErrno } from '../../errno.ts';
import { fail, type Result } from '../../failure.ts';
import type { runTool, ToolReport, ToolRequest } from '../../tool.ts';
import { isShownOf } from '../path/path-walk.ts';

/**
 * `path-missing`, effect `none`: the device shows what is, or was, at `onLoop.path` no more, nor its mark. While it is
 * open no file is taken from it (`lo_release` of the kernel lets go at the last close), so nobody else has it when the
 * tool comes. The open does not touch the file, and it waits in a thread: one that hangs holds up no other tool.
 */
export async function runOnLoop(run: typeof runTool, request: ToolRequest): Promise<Result<ToolReport>> {
  const { onLoop } = request;
  if (onLoop === undefined) return run(request);
  const { name, path, mark } = onLoop;
  const saidBy = async (what: string) =>
    (await readFile(`/sys/block/${name}/loop/${what}`, 'utf8')).replace(/\n$/, '');
  try {
    const pin = await open(`/dev/${name}`, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const isShown = isShownOf(await saidBy('backing_file'), path);
      if (isShown || (await saidBy('sizelimit')) === mark) return await run(request);
    } finally {
      await pin.close();
    }
  } catch (error) {
    return failErrno(error, `look at ${name}`, 'none');
  }
  return fail({ code: 'path-missing', message: `${name} does not show ${path} any more`, effect: 'none' });
}
