/** The agent's numbers, as a scraper gets them. */
import { request } from 'node:http';
import { text } from 'node:stream/consumers';

/** The answer to GET /metrics on the agent's socket. Rejects when there is no answer, or another one than 200. */
export function readMetrics(socketPath: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path: '/metrics' }, (answer) => {
      if (answer.statusCode === 200) text(answer).then(resolve, reject);
      else reject(new Error(`GET /metrics: ${answer.statusCode}`));
    });
    asked.on('error', reject);
    asked.end();
  });
}
