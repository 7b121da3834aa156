# cmake -DCOMMAND=fagen -DOUT=folder -P manual.cmake
# Writes OUT/man1/fagen.1, a page for each subcommand that `fagen help` lists, and the completions OUT/bash/fagen, OUT/zsh/_fagen.
function(fa_write file)
  execute_process(COMMAND ${COMMAND} ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${OUT}/${file} "${text}")
endfunction()

file(REMOVE_RECURSE ${OUT})
fa_write(man1/fagen.1 help --man)
execute_process(COMMAND ${COMMAND} help --json OUTPUT_VARIABLE list COMMAND_ERROR_IS_FATAL ANY)
string(JSON n LENGTH "${list}" commands)
math(EXPR last "${n} - 1")
foreach(i RANGE ${last})
  string(JSON name GET "${list}" commands ${i} name)
  fa_write(man1/fagen-${name}.1 help --man ${name})
endforeach()
fa_write(bash/fagen completion bash)
fa_write(zsh/_fagen completion zsh)
file(TOUCH ${OUT}/made)
