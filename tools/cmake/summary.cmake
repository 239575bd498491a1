# The configure summary: each part says once whether it is on and why.

# thalweg_feature(NAME ON|OFF REASON)
function(thalweg_feature name state reason)
  string(LENGTH "${name}" length)
  math(EXPR pad "20 - ${length}")
  if(pad LESS 1)
    set(pad 1)
  endif()
  string(REPEAT " " ${pad} spaces)
  if(state)
    set(word "on ")
  else()
    set(word "off")
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY THALWEG_SUMMARY "  ${name}${spaces}${word}  ${reason}\n")
endfunction()

function(thalweg_print_summary)
  get_property(lines GLOBAL PROPERTY THALWEG_SUMMARY)
  message(STATUS "Thalweg ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, "
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\n${lines}")
endfunction()
