/** A staged file system dies under a pod: who has it keeps it, who comes waits, and gets one that lives. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode, podWith, targetOf, volumeOf } from './real-node.ts';

const skip = inPrivateNamespace();
const SECOND = podWith('data').replace('name: web,', 'name: later,').replace('uid: web-1', 'uid: later-1');

function placeOf({ pods }: StatusDocument, pod: string) {
  return pods.find(({ name }) => name === pod)?.volumes[0];
}

for (const [fsType, size] of [
  ['ext4', '33554432'],
  ['xfs', '335544320'],
] as const) {
  test(
    `DR-11: no pod gets the dead stage of an ${fsType}; when nobody has it, it is set up anew`,
    { skip },
    () =>
      onRealNode(async (node) => {
        const { yaml, handle } = await node.driver.create('data', size, { fsType });
        node.settings.resync_ms = 1_000;
        node.put('volume', yaml);
        node.put('pod', podWith('data'));
        await node.startAgent();
        await node.untilMounted(1);
        const target = targetOf(node, 'data');
        writeFileSync(join(target, 'note'), 'precious', { flush: true });
        execFileSync('xfs_io', ['-x', '-c', 'shutdown', target]);
        const told = await node.until('its death to be told', (status) => {
          return volumeOf(status, handle)?.health?.some((one) => one.status === 'dead') === true;
        });
        assert.equal(placeOf(told, 'web')?.state, 'mounted', 'who has it keeps it');
        node.put('later', SECOND);
        const waiting = await node.until('the later pod to wait', (status) => {
          return placeOf(status, 'later')?.reason?.code === 'file-system-dead';
        });
        assert.match(placeOf(waiting, 'later')?.reason?.message ?? '', /default\/web/);
        await node.killAgent();
        await node.startAgent();
        await node.until('the later pod to wait again', (status) => {
          return placeOf(status, 'later')?.reason?.code === 'file-system-dead';
        });
        node.remove('pod');
        await node.untilMounted(1);
        const place = target.replace('web-1', 'later-1');
        assert.equal(readFileSync(join(place, 'note'), 'utf8'), 'precious');
        writeFileSync(join(place, 'another'), 'written', { flush: true });
        const alive = await node.until('nobody to be called dead', (status) => {
          return volumeOf(status, handle)?.health?.some(({ status: word }) => word === 'dead') !== true;
        });
        assert.equal(placeOf(alive, 'later')?.state, 'mounted');
        node.remove('later');
        await node.untilEmpty();
      }),
  );
}
