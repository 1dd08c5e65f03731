/** What holds of attachments whoever makes them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Attachment } from '../../plugins/csi/attach/attachment.ts';
import type { PublishContext, VolumeCall } from '../../plugins/plugin.ts';
import type { CsiVolumeSpec } from '../../plugins/volume.ts';

export interface AttachmentWorld {
  readonly attachment: Attachment;
  readonly spec: CsiVolumeSpec;
  /** A call about `spec` that is wanted. */
  readonly call: VolumeCall;
  /** Whoever decides lets the volume be here, with this context. */
  admit(context: PublishContext): void;
  /** And does not any more. */
  refuse(): void;
}

export function attachmentContract(name: string, createWorld: () => Promise<AttachmentWorld>): void {
  test(`${name}: what is admitted is attached, again too, and says how`, async () => {
    const { attachment, spec, call, admit } = await createWorld();
    admit({ lun: '7' });
    for (let time = 0; time < 2; time += 1) {
      const attached = await attachment.attach(spec, call);
      assert.deepEqual(attached.ok && attached.value.publishContext, { lun: '7' });
    }
  });

  test(`${name}: what is refused is not attached, says why, and is attached once it is admitted`, async () => {
    const { attachment, spec, call, admit, refuse } = await createWorld();
    refuse();
    const refused = await attachment.attach(spec, call);
    assert.ok(!refused.ok && refused.failure.message !== '' && refused.failure.blocker === spec.driver);
    admit({});
    assert.ok((await attachment.attach(spec, call)).ok);
  });

  test(`${name}: to detach answers OK, what is not attached too`, async () => {
    const { attachment, spec, call, admit } = await createWorld();
    assert.ok((await attachment.detach(spec, call)).ok);
    admit({});
    assert.ok((await attachment.attach(spec, call)).ok);
    for (let time = 0; time < 2; time += 1) assert.ok((await attachment.detach(spec, call)).ok);
  });

  test(`${name}: what is wanted no more is neither attached nor detached`, async () => {
    const { attachment, spec, call, admit } = await createWorld();
    admit({});
    for (const verb of [attachment.attach, attachment.detach]) {
      const result = await verb(spec, { ...call, stillWanted: () => false });
      assert.equal(!result.ok && result.failure.code, 'no-longer-wanted');
    }
  });

  test(`${name}: a volume of a driver whose object says so has no such rung`, async () => {
    const { attachment, spec } = await createWorld();
    assert.equal(attachment.isNeeded(spec), true);
    assert.equal(attachment.isNeeded({ ...spec, attachRequired: false }), false);
  });
}
