"""How the sample week's pictures were made; run by hand with `python -m flows.sample.make`, never at run time.

Cut-outs of real photographs along outlines drawn by hand, product pictures drawn here, backgrounds from photographs
and noise, composed so that every entity's true mask is known without asking a segmenter.
"""
