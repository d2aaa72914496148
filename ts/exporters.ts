/**
 * `loaderx/exporters`: containers to files of others. Begin with {@link exportNpy}, {@link exportNpz} and {@link exportPictures}.
 *
 * @packageDocumentation
 */
export {
  type ExportOptions,
  type ExportResult,
  exportNpy,
  exportNpz,
  npyBytes,
} from './exporters/npy.js';
export { type ExportPicturesOptions, exportPictures } from './exporters/pictures.js';
