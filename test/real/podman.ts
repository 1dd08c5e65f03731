/**
 * Debian's podman in a place of its own, with an image of this machine's shell; nothing of it stays.
 *
 * It runs beside this process, which has the driver's judge in it: on a busy machine a container takes longer than a
 * question may go unanswered, and a judge that is held up takes a question that was given up for one that is open.
 */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeSmallRoot } from './small-root.ts';

const execute = promisify(execFile);

export interface Podman {
  readonly image: string;
  /** What it says; the test fails when it does. */
  run(...words: readonly string[]): Promise<string>;
  /** By a shell, with `$podman` for its words so far. */
  shell(script: string, variables?: Readonly<Record<string, string>>): Promise<string>;
  /** Unmounts and removes what it has below its directory. */
  close(): Promise<void>;
}

/** Why no podman can be had here, with what else is wanted; false: there is one. */
export function noPodman(...others: readonly string[]): string | false {
  for (const program of ['podman', 'runc', ...others]) {
    if (spawnSync(program, ['--version']).status !== 0) return `${program} is not installed`;
  }
  return false;
}

/** No limits are raised and no network is made: neither may be allowed on a test machine. */
const CONTAINERS = `[containers]
default_ulimits = []
netns = "none"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
`;

export async function createPodman(directory: string): Promise<Podman> {
  mkdirSync(directory);
  const place = (name: string): string => join(directory, name);
  writeFileSync(place('containers.conf'), CONTAINERS);
  const storage = `[storage]\ndriver = "vfs"\ngraphroot = "${place('graph')}"\nrunroot = "${place('run')}"\n`;
  writeFileSync(place('storage.conf'), storage);
  const own = {
    CONTAINERS_CONF: place('containers.conf'),
    CONTAINERS_STORAGE_CONF: place('storage.conf'),
    TMPDIR: directory,
  };
  const end = async (
    program: string,
    words: readonly string[],
    more: Readonly<Record<string, string>>,
  ): Promise<string> => {
    const env = { ...process.env, ...own, ...more };
    const { stdout } = await execute(program, words, { encoding: 'utf8', env, cwd: directory }).catch(
      ({ stderr }: { stderr: string }) => assert.fail(`${program} ${words.join(' ')}: ${stderr}`),
    );
    return stdout;
  };
  const podman: Podman = {
    image: 'localhost/small:1',
    run: (...words) => end('podman', words, {}),
    shell: (script, variables = {}) => end('/bin/sh', ['-ec', script], variables),
    async close() {
      await podman.run('pod', 'rm', '--all', '--force', '--time', '0');
      await podman.run('rm', '--all', '--force', '--time', '0');
    },
  };
  makeSmallRoot(place('root'));
  await podman.shell(`tar -C root -c . | podman import - ${podman.image}`);
  return podman;
}
