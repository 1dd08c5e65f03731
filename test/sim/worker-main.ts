/** The process of a worker: simulates the seeds it is sent and answers with what it saw. */
import { type Batch, simulateBatch } from './worker.ts';

process.on('message', (batch: Batch) => {
  void simulateBatch(batch).then((report) => process.send?.(report));
});
