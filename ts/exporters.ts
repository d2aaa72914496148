/**
 * `loaderx/exporters`: containers to files of others. Begin with {@link exportNpy}, {@link exportNpz},
 * {@link exportParquet} and {@link exportPictures}.
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
export {
  type ExportParquetOptions,
  exportParquet,
  type ParquetCompression,
} from './exporters/parquet.js';
export { type ExportPicturesOptions, exportPictures } from './exporters/pictures.js';
