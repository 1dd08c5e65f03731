/** A path of the machine, as people write it. */
import { type AbsolutePath, parseAbsolutePath } from '../../mount/absolute-path.ts';
import type { FieldReader } from './field-reader.ts';

/** `/data/` and `/data//x` are written often and mean what they seem to; `..` is refused, as by Kubernetes. */
export function readHostPath(reader: FieldReader): AbsolutePath {
  const normal = (text: string): AbsolutePath | undefined => {
    const components = text.split('/').filter((one) => one !== '' && one !== '.');
    return text.startsWith('/') ? parseAbsolutePath(`/${components.join('/')}`) : undefined;
  };
  const text = reader.requiredText((one) => normal(one) !== undefined, 'an absolute path without ".."');
  return normal(text) ?? ('/' as AbsolutePath);
}
