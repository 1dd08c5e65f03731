/** Both forms of the rung `attach`, held to one contract. */
import { createCalledAttachment } from '../../../../plugins/csi/attach/called-attachment.ts';
import { createCallLanes } from '../../../../plugins/csi/call/volume-call-queue.ts';
import { createVolumeRpc } from '../../../../plugins/csi/call/volume-rpc.ts';
import { createSecretMemory } from '../../../../plugins/csi/call/secret-memory.ts';
import { GrpcStatus } from '../../../../plugins/csi/wire/grpc-service.ts';
import { attachmentContract } from '../../../contract/attachment.ts';
import { call, SPEC, world } from '../csi-world.ts';
import { CAPABILITY } from '../scripted-driver.ts';
import { createGrants } from './granted.ts';

attachmentContract('called from here', async () => {
  const made = await world({ controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] });
  const drivers = { get: () => made.instance, suspect: () => {} };
  const memory = createSecretMemory();
  const lanes = createCallLanes();
  const inTurn = createVolumeRpc({ host: made.host, drivers, lanes, deadlineMs: 30_000, memory });
  return {
    attachment: createCalledAttachment({ drivers, inTurn, mayFence: () => false, onUndetached: () => {} }),
    spec: SPEC,
    call: call(),
    admit(context) {
      made.plan.publishContext = context;
      made.plan.before = () => undefined;
    },
    refuse() {
      made.plan.before = (method) => {
        if (method === 'ControllerPublishVolume') throw new GrpcStatus(9, 'it is attached to another node');
      };
    },
  };
});

attachmentContract('granted by a cluster', async () => {
  const grants = createGrants();
  return {
    attachment: grants,
    spec: SPEC,
    call: call(),
    admit: (context) => grants.give(SPEC.id, context),
    refuse: () => grants.withdraw(SPEC.id),
  };
});
